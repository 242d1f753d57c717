import { useState } from 'preact/hooks'

/** Code shows a program and copies it; `text` is empty for an invalid rule. */
export function Code({ text }: { text: string }) {
  const [said, setSaid] = useState('')
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('Copied')
    } catch {
      setSaid('The browser does not allow this page to copy. Select the code and copy it yourself.')
    }
  }
  return (
    <section class="panel code" aria-labelledby="code-title">
      <h2 id="code-title">Code</h2>
      {text === '' ? (
        <p class="small">No code, since the rule is invalid.</p>
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
