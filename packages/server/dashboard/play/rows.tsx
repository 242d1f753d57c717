import { hasEdges } from './algorithms.ts'
import type { Choices } from './choices.ts'
import type { Game, Row } from './game.ts'
import { Timeline } from './timeline.tsx'

/** RowsProps: `problem` is the error of the chosen algorithm, which is shown elsewhere. */
interface RowsProps {
  readonly game: Game
  readonly choices: Choices
  readonly problem: string
}

/** Rows shows how all algorithms decide on the traffic of one client. */
export function Rows({ game, choices, problem }: RowsProps) {
  return (
    <ul class="rows">
      {game.rows.map((row) => (
        <li
          key={row.algorithm.name}
          class="row"
          data-algorithm={row.algorithm.name}
          aria-current={row.algorithm.name === choices.algorithm ? 'true' : undefined}
        >
          <Judged row={row} nowUs={game.nowUs()} choices={choices} isTold={problem !== ''} />
        </li>
      ))}
    </ul>
  )
}

interface JudgedProps {
  readonly row: Row
  readonly nowUs: number
  readonly choices: Choices
  /** The error is already shown elsewhere. */
  readonly isTold: boolean
}

function Judged({ row, nowUs, choices, isTold }: JudgedProps) {
  const { algorithm, rule, problem } = row
  const { allowed, refused, mostInPer, marks } = row.score(choices.client)
  return (
    <>
      <div class="judge">
        <h3>{algorithm.title}</h3>
        <p class="counts">
          <span class="allowed" data-role="allowed">
            ✓ {allowed} allowed
          </span>
          <span class="refused" data-role="refused">
            ✕ {refused} refused
          </span>
        </p>
      </div>
      {rule && problem === '' ? (
        <>
          <Timeline
            marks={marks}
            nowUs={nowUs}
            perUs={rule.perUs}
            hasEdges={hasEdges(algorithm, choices)}
            label={`${algorithm.title}: ${allowed} allowed, ${refused} refused`}
          />
          <p class="most" data-over={mostInPer > rule.limit ? '' : undefined}>
            max. in any {rule.perUs / 1_000_000} s: <b data-role="most">{mostInPer}</b>
            {mostInPer > rule.limit ? ` (limit ${rule.limit})` : ''}
          </p>
        </>
      ) : (
        <p class={isTold ? 'small' : 'problem'}>{isTold ? 'cannot decide' : problem}</p>
      )}
    </>
  )
}
