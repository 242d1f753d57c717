/** demoConfig is the configuration that the server runs with when it is given none. */
export const demoConfig = `# yaml-language-server: $schema=./sluice.schema.json
#
# A configuration to try Sluice with. Start it:    sluice serve --config sluice.yaml
# Ask it something:                                curl -i http://127.0.0.1:8080/hello
# Check it after a change:                         sluice validate sluice.yaml
# All that can be written here is in docs/reference/config.md.

# Only this machine can reach it. For all: 0.0.0.0:8080
listen: 127.0.0.1:8080

# Decisions for other programs, what operators ask, health and metrics.
api: 127.0.0.1:8081

# Counts are kept in this process. For several servers: redis://127.0.0.1:6379
store: memory

# How much clients may do. A rule is LIMIT/PER: 60/1m is sixty requests a minute.
tiers:
  free: 60/1m burst 20 # at most 20 at once, then one a second
  pro: [600/1m burst 100, 100000/1d fixed-window] # both must allow it
  internal: unlimited

# The tier of everybody who is not listed below.
defaultTier: free

# Who is in another tier. Clients are known by their address, see \`key\`.
clients:
  192.0.2.10: pro
  192.0.2.20: internal

# A client is its address. With API keys: api-key:x-api-key, and then clients are listed above by
# what this prints:    sluice key --api-key - < secret.txt
key: address

# Where admitted requests go. \`echo\` is built in and answers with what it got.
# Yours would be: main: http://127.0.0.1:3000
upstreams:
  demo: echo

# The first route that matches a request counts.
routes:
  - name: search
    path: /search/** # ** is the rest of the path, * is one part of it
    cost: 5 # a search takes five units of the tier
    upstream: demo

  - name: health
    path: /health
    open: true # never limited
    upstream: demo

  - name: everything
    path: /**
    upstream: demo
`
