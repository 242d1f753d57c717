import { Chart } from './chart.tsx'
import type { LiveState } from './live-state.ts'
import { clockOf, inFull, inWords } from './words.ts'

const modes: Readonly<Record<string, string>> = {
  local: 'each server decides by itself, by the same rules',
  open: 'everything is let through',
  closed: 'everything is refused',
}

/** StorePanel shows how long decisions take, and when the store was away. */
export function StorePanel({ state }: { state: LiveState }) {
  const { seconds, away, start } = state
  const storeless = seconds.reduce((sum, second) => sum + second.storeless, 0)
  return (
    <section class="panel" aria-labelledby="store-title">
      <h2 id="store-title">Store and time to decide</h2>
      <Chart
        label="Time to decide over the last five minutes, median and 99th percentile"
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
        <p class="small">Counts are in the memory of this process: nothing can be away.</p>
      ) : (
        <>
          <p class="small">
            Without the store {modes[start.store.onFailure]}.
            {storeless > 0 && ` Of the last 5 minutes: ${inFull(storeless)} decisions.`}
          </p>
          {away.length === 0 && <p class="small">It has not been away.</p>}
          <ul class="away">
            {away.toReversed().map(({ fromMs, toMs, reason }) => (
              <li key={fromMs}>
                <b>{clockOf(fromMs)}</b>{' '}
                {toMs === null ? (
                  <span class="refused">away since then</span>
                ) : (
                  `away for ${inWords(toMs - fromMs)}`
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
