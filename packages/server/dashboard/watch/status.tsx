import { type LiveState, sumOf } from './live-state.ts'
import { inFull, inWords } from './words.ts'

/** The state of the connection. */
export type Connection = 'connecting' | 'live' | 'reconnecting'

const RECENT = 10

/** Status is the summary line: is everything all right? */
export function Status({ state, connection }: { state: LiveState; connection: Connection }) {
  const recent = state.seconds.slice(-RECENT)
  const seconds = recent.reduce((sum, { forMs }) => sum + forMs, 0) / 1_000 || 1
  const sum = sumOf(
    recent.flatMap(({ counts }) => counts),
    { route: '', tier: '' },
  )
  const all = sum.allowed + sum.refused + sum.shadowed
  const latency = recent.findLast(({ latency }) => latency)?.latency
  const { store } = state.start
  const lasting = state.away.find(({ toMs }) => toMs === null)
  return (
    <dl class="status">
      <Figure name="Connection">
        <span
          role="status"
          class={connection === 'live' ? 'allowed' : 'warn'}
          data-role="connection"
        >
          {connection === 'live' ? '● live' : `◌ ${connection}…`}
        </span>
      </Figure>
      <Figure name="Decisions">{rate(all / seconds)}</Figure>
      <Figure name="Refused">
        <span class={sum.refused > 0 ? 'refused' : ''}>
          {rate(sum.refused / seconds)}
          {all > 0 && ` (${Math.round((100 * sum.refused) / all)} %)`}
        </span>
      </Figure>
      <Figure name="Decision time">
        {latency ? `${inWords(latency.p50Ms)}, p99 ${inWords(latency.p99Ms)}` : '–'}
      </Figure>
      <Figure name={`Store (${store.kind})`}>
        <span class={lasting ? 'refused' : 'allowed'} data-role="store">
          {lasting ? '✕ unavailable' : '✓ connected'}
        </span>
      </Figure>
    </dl>
  )
}

function Figure({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function rate(perSecond: number): string {
  return `${perSecond >= 100 ? inFull(perSecond) : Number(perSecond.toFixed(1))} /s`
}
