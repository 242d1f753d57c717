/** routeName is the `name` of a route, or else built as in `GET,POST api.example.com/search`. */
export function routeName(route: Readonly<Record<string, unknown>>): string {
  if (typeof route.name === 'string') return route.name
  const methods = Array.isArray(route.methods) ? route.methods : []
  const upper = methods.filter((each) => typeof each === 'string').map((each) => each.toUpperCase())
  const host = typeof route.host === 'string' ? route.host.toLowerCase() : ''
  return `${upper.length > 0 ? `${upper.join(',')} ` : ''}${host}${route.path}`
}
