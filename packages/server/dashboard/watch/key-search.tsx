import { useState } from 'preact/hooks'
import { ask } from './api.ts'
import { KeyText } from './key-text.tsx'

const SHOWN = 10

/** KeySearch finds keys that contain a text; or opens the key that is exactly that. */
export function KeySearch({ look }: { look(key: string): void }) {
  const [text, setText] = useState('')
  const [found, setFound] = useState<string[]>()
  const [problem, setProblem] = useState('')

  async function search(): Promise<void> {
    try {
      const query = new URLSearchParams({ filter: text, count: String(SHOWN) })
      const { keys } = await (await ask(`/v1/keys?${query}`)).json()
      const names = (keys as { key: string }[]).map(({ key }) => key)
      setProblem('')
      // A key that is fresh is not listed, and may be looked at all the same.
      if (names.length === 0 || (names.length === 1 && names[0] === text)) return open(text)
      setFound(names)
    } catch (error) {
      setProblem((error as Error).message)
    }
  }

  function open(key: string): void {
    setFound(undefined)
    if (key !== '') look(key)
  }
  return (
    <search>
      <form
        class="controls"
        onSubmit={(event) => {
          event.preventDefault()
          void search()
        }}
      >
        <label class="field long">
          <span>Key, or a part of it</span>
          <input
            type="search"
            name="key"
            value={text}
            maxLength={1_024}
            autocomplete="off"
            spellcheck={false}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary">
          Find
        </button>
        <button type="button" disabled={text === ''} onClick={() => open(text)}>
          Exactly this
        </button>
      </form>
      <p class="problem" role="alert">
        {problem}
      </p>
      {found && (
        <ul class="found">
          {found.map((key) => (
            <li key={key}>
              <button type="button" class="link" onClick={() => open(key)}>
                <KeyText text={key} />
              </button>
            </li>
          ))}
        </ul>
      )}
    </search>
  )
}
