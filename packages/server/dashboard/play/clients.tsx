import { clients } from './choices.ts'
import type { Row } from './game.ts'

/** ClientsProps: `row` is the chosen algorithm with its decisions. */
interface ClientsProps {
  readonly row: Row
  readonly picked: string
  pick(client: string): void
}

/** Clients shows the bucket of each client, and selects the one that sends requests. */
export function Clients({ row, picked, pick }: ClientsProps) {
  return (
    <fieldset class="clients">
      <legend>Client</legend>
      {clients.map((client) => (
        <label key={client} class="client" data-client={client}>
          <input
            type="radio"
            name="client"
            checked={client === picked}
            onChange={() => pick(client)}
          />
          <Bucket row={row} client={client} />
        </label>
      ))}
    </fieldset>
  )
}

function Bucket({ row, client }: { row: Row; client: string }) {
  const decision = row.peek(client)
  const { allowed, refused } = row.score(client)
  if (!decision) return <span class="name">{client}</span>
  const { remaining, capacity, resetAfterMs } = decision
  return (
    <>
      <span class="name">{client}</span>
      <span class="tank" aria-hidden="true">
        <span class="water" style={{ height: `${(100 * remaining) / capacity}%` }} />
      </span>
      <span class="figure">
        <b data-role="remaining">{remaining}</b> of {capacity} left
      </span>
      <span class="small">
        {resetAfterMs === 0 ? 'full' : `full in ${(resetAfterMs / 1_000).toFixed(1)} s`}
      </span>
      <span class="small">
        ✓ {allowed}
        <span class="unseen"> allowed,</span> ✕ {refused}
        <span class="unseen"> refused</span>
      </span>
    </>
  )
}
