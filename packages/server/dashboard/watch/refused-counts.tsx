import { inFull } from './words.ts'

/** RefusedCounts says how many were refused, and how many would have been, but for shadow mode. */
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
      {shadowed > 0 && <span data-role="shadowed">{inFull(shadowed)} in shadow</span>}
    </span>
  )
}
