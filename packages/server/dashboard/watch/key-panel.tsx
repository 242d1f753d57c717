import { useState } from 'preact/hooks'
import { KeyActions } from './key-actions.tsx'
import { KeyNow } from './key-now.tsx'
import { KeyText } from './key-text.tsx'
import type { LiveState } from './live-state.ts'
import { useKey } from './use-key.ts'
import { clockOf, inFull, reasonOf } from './words.ts'

/** How many decisions are listed at first. */
const SHOWN = 10

const signs = { allowed: '✓', refused: '✕', shadowed: '◌' } as const

/** KeyPanel shows one key: what is left, recent decisions, and the actions of operators. */
export function KeyPanel({
  id,
  state: live,
  isLost,
  close,
}: {
  id: string
  state: LiveState
  /** The connection is lost. */
  isLost: boolean
  close(): void
}) {
  const { reading, problem, refresh } = useKey(id)
  const { mayChange, tiers } = live.start
  const [isAll, setIsAll] = useState(false)
  const shown = isAll ? live.decisions : live.decisions.slice(0, SHOWN)
  const isOld = isLost || problem !== ''
  const isBlocked = Object.values(reading?.state.limits ?? {}).some(
    ({ source }) => source === 'blocked',
  )
  return (
    <div class="key" data-role="key">
      <div class="heading">
        <h3 class="key-name">
          <KeyText text={id} />
        </h3>
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
      <p class="problem" data-role="unread">
        {isOld && `${problem || 'The current state is not available.'} `}
        {isOld && reading && `Last update: ${clockOf(reading.clockMs)}.`}
      </p>
      {reading && (
        <>
          <p>
            Tier <b data-role="tier">{reading.state.tier}</b>
            {reading.state.given.tier !== null && <span class="small"> assigned at run time</span>}
            {reading.state.given.rules !== null && <span class="small"> · has its own rules</span>}
          </p>
          <KeyNow reading={reading} about={live.start} isOld={isOld} />
          {mayChange ? (
            <KeyActions
              key={id}
              state={reading.state}
              tiers={Object.keys(tiers)}
              isBlocked={isBlocked}
              changed={refresh}
            />
          ) : (
            <p class="small">Your token has read access only.</p>
          )}
        </>
      )}
      <h3>Recent decisions</h3>
      {live.decisions.length === 0 && (
        <p class="small">No recent refusals. New decisions appear here while this page is open.</p>
      )}
      <ul class="decisions">
        {shown.map((decision, i) => (
          <li key={`${decision.atMs}/${live.decisions.length - i}`}>
            <span class="small">{clockOf(decision.atMs)}</span>
            <span class={decision.outcome}>
              <span aria-hidden="true">{signs[decision.outcome]} </span>
              {reasonOf(decision)}
            </span>
            <span class="small">{decision.route ? `on ${decision.route}` : 'by the API'}</span>
          </li>
        ))}
      </ul>
      {live.decisions.length > SHOWN && (
        <button type="button" onClick={() => setIsAll(!isAll)}>
          {isAll ? 'Show fewer' : `Show all ${live.decisions.length}`}
        </button>
      )}
      {live.leftOut > 0 && <p class="small">{inFull(live.leftOut)} more were too many to list.</p>}
    </div>
  )
}
