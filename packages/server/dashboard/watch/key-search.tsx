import { useState } from 'preact/hooks'
import { ask } from './api.ts'
import { KeyLink } from './key-link.tsx'
import { KeyText } from './key-text.tsx'
import type { LiveState } from './live-state.ts'

const SHOWN = 10

/** Found is a search and its result. */
interface Found {
  readonly text: string
  readonly keys: readonly string[]
}

/** KeySearch finds keys that contain a text, or opens exactly that key. */
export function KeySearch({ state, look }: { state: LiveState; look(key: string): void }) {
  const [text, setText] = useState('')
  const [found, setFound] = useState<Found>()
  const [problem, setProblem] = useState('')

  async function search(): Promise<void> {
    try {
      const keys = await keysWith(text, state)
      setProblem('')
      if (keys.length === 1 && keys[0] === text) return open(text)
      setFound({ text, keys })
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
          Open exact key
        </button>
      </form>
      <p class="problem" role="alert">
        {problem}
      </p>
      <p role="status" class="small" data-role="searched">
        {found && <Searched {...found} />}
      </p>
      {found && (
        <ul class="found">
          {found.keys.map((key) => (
            <li key={key}>
              <KeyLink text={key} look={open} />
            </li>
          ))}
        </ul>
      )}
    </search>
  )
}

function Searched({ text, keys }: Found) {
  if (keys.length >= SHOWN) return <>There may be more: type more of the key.</>
  if (keys.length > 0) return null
  if (text === '') return <>No key is in use; unused keys are not listed.</>
  return (
    <>
      No key in use contains ‘<KeyText text={text} />
      ’; unused keys are not listed. If it is a whole key, choose <i>Open exact key</i>.
    </>
  )
}

/**
 * keysWith finds keys that contain a text: first those on the page, used or not, then keys in use.
 */
async function keysWith(text: string, { top, start }: LiveState): Promise<string[]> {
  const shown = [...(top?.limited ?? []), ...(top?.talking ?? [])].map(({ key }) => key)
  const keys = new Set(shown.filter((key) => key.includes(text)))
  for (const limiter of ['tiers', ...Object.keys(start.routes)]) {
    if (keys.size >= SHOWN) break
    const query = new URLSearchParams({ filter: text, limiter, count: String(SHOWN) })
    const page = await (await ask(`/v1/keys?${query}`)).json()
    for (const { key } of page.keys as { key: string }[]) keys.add(key)
  }
  return [...keys].slice(0, SHOWN)
}
