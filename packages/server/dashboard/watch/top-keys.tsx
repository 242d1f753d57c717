import type { LiveKey } from '../../src/dashboard/live-event.ts'
import { KeyLink } from './key-link.tsx'
import { RefusedCounts } from './refused-counts.tsx'
import { inFull } from './words.ts'

/** TopKeysProps: the keys, highest count first; undefined until they are known. */
interface TopKeysProps {
  readonly id: string
  readonly title: string
  readonly none: string
  readonly keys: readonly LiveKey[] | undefined
  /** Whether counts are refusals, some of them in shadow mode. */
  readonly ofRefusals?: boolean
  look(key: string): void
}

/** TopKeys lists keys with links that open them. */
export function TopKeys({ id, title, none, keys, ofRefusals = false, look }: TopKeysProps) {
  return (
    <section class="panel" aria-labelledby={id}>
      <h2 id={id}>
        {title} <span class="small">in the last hours</span>
      </h2>
      {keys?.length === 0 && <p class="small">{none}</p>}
      <ol class="top-keys">
        {keys?.map(({ key, count, shadowed, route, tier, rule }) => (
          <li key={key}>
            <KeyLink text={key} look={look} />
            <span class="small">
              {[tier, rule, route && `last on ${route}`].filter((part) => part !== '').join(' · ')}
            </span>
            {ofRefusals ? (
              <RefusedCounts refused={count - shadowed} shadowed={shadowed} />
            ) : (
              <b>{inFull(count)}</b>
            )}
          </li>
        ))}
      </ol>
    </section>
  )
}
