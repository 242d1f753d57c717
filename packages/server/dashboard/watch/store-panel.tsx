import { Chart } from './chart.tsx'
import type { LiveState } from './live-state.ts'
import { clockOf, inFull, inWords } from './words.ts'

const modes: Readonly<Record<string, string>> = {
  local: 'each server decides on its own, by the same rules',
  open: 'all requests are admitted',
  closed: 'all requests are refused',
}

/** StorePanel shows how long decisions take, and the outages of the store. */
export function StorePanel({ state }: { state: LiveState }) {
  const { seconds, away, start } = state
  const storeless = seconds.reduce((sum, second) => sum + second.storeless, 0)
  return (
    <section class="panel" aria-labelledby="store-title">
      <h2 id="store-title">Store and decision time</h2>
      <Chart
        label="Decision time over the last five minutes, median and 99th percentile"
        times={seconds.map(({ atMs }) => atMs / 1_000)}
        lines={[
          {
            label: 'median',
            colour: '--accent',
            values: seconds.map(({ latency }) => latency?.p50Ms ?? null),
          },
          {
            label: 'p99',
            colour: '--warn',
            isDashed: true,
            values: seconds.map(({ latency }) => latency?.p99Ms ?? null),
          },
        ]}
        format={inWords}
      />
      {start.store.kind === 'memory' ? (
        <p class="small">State is kept in the memory of this process, so the store cannot fail.</p>
      ) : (
        <>
          <p class="small">
            While the store is unavailable, {modes[start.store.onFailure]}.
            {storeless > 0 && ` In the last 5 minutes: ${inFull(storeless)} decisions.`}
          </p>
          {away.length === 0 && <p class="small">No outage since the start.</p>}
          <ul class="away">
            {away.toReversed().map(({ fromMs, toMs, reason }) => (
              <li key={fromMs}>
                <b>{clockOf(fromMs)}</b>{' '}
                {toMs === null ? (
                  <span class="refused">unavailable since then</span>
                ) : (
                  `unavailable for ${inWords(toMs - fromMs)}`
                )}
                <span class="small"> {reason}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}
