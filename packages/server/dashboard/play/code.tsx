import { useState } from 'preact/hooks'

/** Code shows a program, and copies it; an empty one is for a rule that does not work. */
export function Code({ text }: { text: string }) {
  const [said, setSaid] = useState('')
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('Copied')
    } catch {
      setSaid('Select it and copy it by hand: the browser does not let this page do it.')
    }
  }
  return (
    <section class="panel code" aria-labelledby="code-title">
      <h2 id="code-title">Code</h2>
      {text === '' ? (
        <p class="small">There is none for this rule: see what is wrong with it.</p>
      ) : (
        <>
          <pre data-role="code">{text}</pre>
          <button type="button" onClick={copy}>
            Copy
          </button>
        </>
      )}
      <span class="small" role="status">
        {said}
      </span>
    </section>
  )
}
