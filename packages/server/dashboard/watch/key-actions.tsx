import { useState } from 'preact/hooks'
import { ask } from './api.ts'
import { type KeyState, pathOf } from './use-key.ts'

/** KeyActionsProps: the key, all tiers, and what to call after a change. */
interface KeyActionsProps {
  readonly state: KeyState
  readonly tiers: readonly string[]
  readonly isBlocked: boolean
  changed(): Promise<void>
}

/** KeyActions are the changes that an operator can make to a key. */
export function KeyActions({ state, tiers, isBlocked, changed }: KeyActionsProps) {
  const { key, tier, given } = state
  const [said, setSaid] = useState({ text: '', isProblem: false })
  const [duration, setDuration] = useState('10m')
  const [nextTier, setNextTier] = useState('')
  const [rules, setRules] = useState<string>()
  const client = `/v1/clients/${encodeURIComponent(key)}`

  const act = (done: string, path: string, method: string, body?: object) => async () => {
    try {
      await ask(path, { method, ...(body ? { body } : {}) })
      setSaid({ text: done, isProblem: false })
    } catch (error) {
      setSaid({ text: (error as Error).message, isProblem: true })
    }
    await changed()
  }
  const chosenTier = nextTier || tier
  const written = rules ?? given.rules?.join(', ') ?? ''
  const texts = written.split(',').map((text) => text.trim())
  return (
    <div class="actions">
      <div class="controls">
        <button type="button" onClick={act('Reset.', pathOf(key), 'DELETE')}>
          Reset
        </button>
        <label class="field short">
          <span>Block for</span>
          <input
            value={duration}
            onInput={({ currentTarget }) => setDuration(currentTarget.value)}
          />
        </label>
        <button
          type="button"
          class="danger"
          onClick={act(`Blocked for ${duration}.`, pathOf(key, '/block'), 'POST', {
            duration,
          })}
        >
          Block
        </button>
        <button
          type="button"
          disabled={!isBlocked}
          onClick={act('Unblocked.', pathOf(key, '/block'), 'DELETE')}
        >
          Unblock
        </button>
      </div>
      <div class="controls">
        <label class="field">
          <span>New tier</span>
          <select
            value={chosenTier}
            onChange={({ currentTarget }) => setNextTier(currentTarget.value)}
          >
            {tiers.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          onClick={act(`Tier set to ${chosenTier}.`, `${client}/tier`, 'PUT', { tier: chosenTier })}
        >
          Set tier
        </button>
        <button
          type="button"
          disabled={given.tier === null}
          onClick={act('Tier reset to the configured one.', `${client}/tier`, 'DELETE')}
        >
          Remove tier
        </button>
      </div>
      <div class="controls">
        <label class="field long">
          <span>Own rules, instead of the tier's</span>
          <input
            value={written}
            placeholder="100/1m burst 20, 1000/1h fixed-window"
            spellcheck={false}
            onInput={({ currentTarget }) => setRules(currentTarget.value)}
          />
        </label>
        <button
          type="button"
          onClick={act('Own rules set.', `${client}/rules`, 'PUT', { rules: texts })}
        >
          Set rules
        </button>
        <button
          type="button"
          disabled={given.rules === null}
          onClick={() => {
            setRules(undefined)
            return act('Rules of the tier apply again.', `${client}/rules`, 'DELETE')()
          }}
        >
          Remove rules
        </button>
      </div>
      <p role="status" class={said.isProblem ? 'problem' : 'small'} data-role="said">
        {said.text}
      </p>
    </div>
  )
}
