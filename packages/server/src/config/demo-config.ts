/** demoConfig is the configuration of the demonstration, which runs without a file. */
export const demoConfig = `# yaml-language-server: $schema=./sluice.schema.json
#
# A configuration to try Sluice with. Start it:    sluice serve --config sluice.yaml
# Send a request:                                  curl -i http://127.0.0.1:8080/hello
# Check it after a change:                         sluice validate sluice.yaml
# All fields are described in docs/reference/config.md.

# The gateway. Only this machine can reach it; for all interfaces: 0.0.0.0:8080
listen: 127.0.0.1:8080

# The API: decisions for other programs, administration, health and metrics.
api: 127.0.0.1:8081

# The state of all limits is kept in this process. For several servers: redis://127.0.0.1:6379
store: memory

# The limits. A rule is LIMIT/PER: 60/1m is sixty requests per minute.
tiers:
  free: 60/1m burst 20 # at most 20 at once, then one per second
  pro: [600/1m burst 100, 100000/1d fixed-window] # both must allow a request
  internal: unlimited

# The tier of clients that are not listed below.
defaultTier: free

# Clients in other tiers, by their key. Here the key is the address, see \`key\`.
clients:
  192.0.2.10: pro
  192.0.2.20: internal

# What identifies a client: its address. For API keys: api-key:x-api-key, and then clients are listed
# above by the output of:    sluice key --api-key - < secret.txt
key: address

# Where admitted requests go. \`echo\` is built in and answers with the request that it received.
# For your own server: main: http://127.0.0.1:3000
upstreams:
  demo: echo

# The first route that matches a request applies.
routes:
  - name: search
    path: /search/** # ** matches the rest of the path, * one segment
    cost: 5 # a search costs five units of the tier's limits
    upstream: demo

  - name: health
    path: /health
    open: true # never limited
    upstream: demo

  - name: everything
    path: /**
    upstream: demo
`
