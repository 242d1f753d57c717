import { algorithmOf, algorithms } from './algorithms.ts'
import type { Choices } from './choices.ts'

/** RuleFormProps: the choices, the function that changes them, and the library's error. */
interface RuleFormProps {
  readonly choices: Choices
  readonly problem: string
  choose(part: Partial<Choices>): void
}

/** RuleForm selects the algorithm and its parameters. */
export function RuleForm({ choices, problem, choose }: RuleFormProps) {
  const { extra, promise } = algorithmOf(choices.algorithm)
  const isUnused = (name: string) => (name === 'burst' || name === 'queue') && extra !== name
  const field = (name: keyof Choices, label: string, hint = '') => (
    <label class="field">
      <span>{label}</span>
      <input
        type="text"
        inputMode={name === 'per' ? 'text' : 'numeric'}
        name={name}
        value={choices[name]}
        placeholder={isUnused(name) ? 'not used' : hint}
        disabled={isUnused(name)}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={problem.includes(`${name} `) || undefined}
        onInput={({ currentTarget }) => choose({ [name]: currentTarget.value.trim() })}
      />
    </label>
  )
  return (
    <section class="panel" aria-labelledby="rule-title">
      <h2 id="rule-title">Rule</h2>
      <label class="field wide">
        <span>Algorithm</span>
        <select
          name="algorithm"
          value={choices.algorithm}
          onChange={({ currentTarget }) => choose({ algorithm: currentTarget.value })}
        >
          {algorithms.map(({ name, title }) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <p class="small">{promise}</p>
      <div class="fields">
        {field('limit', 'Limit')}
        {field('per', 'Per', '10s, 1m, 1h')}
        {field('burst', 'Burst', `as limit`)}
        {field('queue', 'Queue', `as limit`)}
        {field('cost', 'Cost of a request')}
        {extra === 'align' && (
          <label class="field wide">
            <span>Windows start</span>
            <select
              name="align"
              value={choices.align}
              onChange={({ currentTarget }) => choose({ align: currentTarget.value })}
            >
              <option value="clock">by the clock</option>
              <option value="request">at the first request</option>
            </select>
          </label>
        )}
      </div>
      <p class="small">
        Burst applies to token bucket and GCRA, queue to the leaky bucket. Both values stay in
        effect in the rows below when another algorithm is selected.
      </p>
      <p class="problem" role="alert" data-role="problem">
        {problem}
      </p>
    </section>
  )
}
