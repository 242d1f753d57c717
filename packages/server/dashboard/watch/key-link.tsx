import { KeyText } from './key-text.tsx'

/** addressOf is the page's address with a key open; empty for none. */
export function addressOf(key: string): string {
  return key === '' ? '/' : `/?key=${encodeURIComponent(key)}`
}

/** KeyLink opens a key on this page, or in a new tab like any link. */
export function KeyLink({ text, look }: { text: string; look(key: string): void }) {
  // A lone surrogate cannot be encoded in a URL.
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
