/** Served has the URLs of a running service. */
export interface Served {
  readonly gatewayUrl: string
  readonly apiUrl: string
}

/**
 * greeting is what `sluice serve` prints once it runs; without a `file` it lists commands to try.
 */
export function greeting(served: Served, file: string | undefined, workers: number): string {
  const { gatewayUrl: gateway, apiUrl: api } = served
  const processes = workers > 1 ? `   (${workers} processes)` : ''
  return `gateway  ${gateway}${processes}
API      ${api}   /v1/check, /v1/keys, /v1/top, /v1/auth, /v1/openapi.json, /metrics
pages    ${api}/ (dashboard), ${api}/play (playground)
${file === undefined ? demonstration(gateway, api) : ''}`
}

function demonstration(gateway: string, api: string): string {
  const lines = [
    [`curl -i ${gateway}/hello`, '20 pass at once, then one per second'],
    [`curl -i ${gateway}/search/it`, 'costs 5 units'],
    [`curl ${api}/v1/keys/127.0.0.1`, 'what is left of each limit'],
    [`curl -X DELETE ${api}/v1/keys/127.0.0.1`, 'reset the key'],
  ]
  const width = Math.max(...lines.map(([command]) => command.length))
  // The comment keeps each line valid when it is copied as a whole.
  const shown = lines.map(([command, says]) => `  ${command.padEnd(width)}   # ${says}`)
  return `
This is a demonstration: every request goes to a built-in echo server. Try

${shown.join('\n')}

For your own configuration, press Ctrl-C and run: npx sluice serve --config sluice.yaml
`
}
