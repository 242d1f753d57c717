import { KeyText } from './key-text.tsx'

/** addressOf is the address of the page with a key open; empty for none. */
export function addressOf(key: string): string {
  return key === '' ? '/' : `/?key=${encodeURIComponent(key)}`
}

/** KeyLink opens a key: here, or where the visitor wants it, as any link. */
export function KeyLink({ text, look }: { text: string; look(key: string): void }) {
  // A key with half a character cannot be written in an address.
  if (!text.isWellFormed()) return <KeyText text={text} />
  return (
    <a
      class="link"
      href={addressOf(text)}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        look(text)
      }}
    >
      <KeyText text={text} />
    </a>
  )
}
