import { useState } from 'preact/hooks'
import { token } from './api.ts'

/** TokenForm asks for a token; `problem` is the error of the last one. */
export function TokenForm({ problem, given }: { problem: string; given(): void }) {
  const [text, setText] = useState('')
  return (
    <form
      class="panel ask"
      onSubmit={(event) => {
        event.preventDefault()
        token.set(text.trim())
        given()
      }}
    >
      <h1>Token required</h1>
      <p class="small">
        One of <code>admin.tokens</code> in the configuration. It is stored until you close this
        tab.
      </p>
      <label class="field">
        <span>Token</span>
        <input
          type="password"
          name="token"
          autocomplete="off"
          required
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary">
        Open dashboard
      </button>
      <p class="problem" role="alert">
        {problem}
      </p>
    </form>
  )
}
