import { inFull } from './words.ts'

/** RefusedCounts shows how many requests were refused, and how many only in shadow mode. */
export function RefusedCounts({ refused, shadowed }: { refused: number; shadowed: number }) {
  const isBoth = refused > 0 && shadowed > 0
  return (
    <span class="refused-counts">
      {refused > 0 && (
        <b class="refused" data-role="refused">
          {inFull(refused)} refused
        </b>
      )}
      {isBoth && ' · '}
      {shadowed > 0 && <span data-role="shadowed">{inFull(shadowed)} in shadow mode</span>}
    </span>
  )
}
