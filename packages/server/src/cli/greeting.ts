/** Served is where a service can be reached. */
export interface Served {
  readonly gatewayUrl: string
  readonly apiUrl: string
}

/** greeting is what `sluice serve` says when it has started; without a `file`, what to try. */
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
    [`curl -i ${gateway}/hello`, '20 pass at once, then one a second'],
    [`curl -i ${gateway}/search/it`, 'costs five'],
    [`curl ${api}/v1/keys/127.0.0.1`, 'what is left, and of what'],
    [`curl -X DELETE ${api}/v1/keys/127.0.0.1`, 'forget it'],
  ]
  const width = Math.max(...lines.map(([command]) => command.length))
  // A line can be copied as a whole.
  const shown = lines.map(([command, says]) => `  ${command.padEnd(width)}   # ${says}`)
  return `
This is a demonstration: everything goes to a built-in echo. Try

${shown.join('\n')}

and for your own, after Ctrl-C: npx sluice serve --config sluice.yaml
`
}
