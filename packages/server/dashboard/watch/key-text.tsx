/** Characters that are invisible or change how other text is displayed: keys could look alike. */
const UNSEEN = /([\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}])/u

/** KeyText shows a key as text in its own direction, with names for invisible characters. */
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
