/** What cannot be seen, or changes how other text is shown, and could make a key look like another. */
const UNSEEN = /([\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}])/u

/** KeyText shows a key as it is: as text, in its own direction, with names for what is unseen. */
export function KeyText({ text }: { text: string }) {
  return (
    <bdi class="key-text">
      {text.split(UNSEEN).map((part, i) => (i % 2 === 0 ? part : <i>{nameOf(part)}</i>))}
    </bdi>
  )
}

function nameOf(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`
}
