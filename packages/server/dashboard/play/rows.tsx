import type { Game, Row } from './game.ts'
import { Timeline } from './timeline.tsx'

/** Rows shows how all six judge the traffic of one client. */
export function Rows({ game, client, chosen }: { game: Game; client: string; chosen: string }) {
  return (
    <ul class="rows">
      {game.rows.map((row) => (
        <li
          key={row.algorithm.name}
          class="row"
          data-algorithm={row.algorithm.name}
          aria-current={row.algorithm.name === chosen ? 'true' : undefined}
        >
          <Judged row={row} nowUs={game.nowUs()} client={client} />
        </li>
      ))}
    </ul>
  )
}

function Judged({ row, nowUs, client }: { row: Row; nowUs: number; client: string }) {
  const { algorithm, rule, problem } = row
  const { allowed, refused, mostInPer, marks } = row.tally(client)
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
            label={`${algorithm.title}: ${allowed} allowed, ${refused} refused`}
          />
          <p class="most" data-over={mostInPer > rule.limit ? '' : undefined}>
            most in any {rule.perUs / 1_000_000} s: <b data-role="most">{mostInPer}</b>
            {mostInPer > rule.limit ? ` (limit ${rule.limit})` : ''}
          </p>
        </>
      ) : (
        <p class="problem">{problem}</p>
      )}
    </>
  )
}
