/** Env maps the names of environment variables to their values. */
export type Env = Readonly<Record<string, string | undefined>>

/**
 * fillIn replaces each `${NAME}` by the variable of that name; `$${` stands for the characters
 * `${`. A variable that cannot be replaced stays, and `complain` gets the reason.
 */
export function fillIn(text: string, env: Env, complain: (message: string) => void): string {
  return text.replace(/\$\$\{|\$\{([^}]*)(\}?)/g, (found, name?: string, end?: string) => {
    if (name === undefined) return '${'
    if (end === '' || !/^[A-Za-z_]\w{0,127}$/.test(name)) {
      complain(
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what the reader may write
        'cannot read a variable. Write ${NAME}, with letters, digits and _ in its name, or $${ for the characters ${.',
      )
      return found
    }
    // Own properties only: every object inherits a `constructor`.
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (value !== undefined) return value
    complain(`the environment variable ${name} is not set. Set it, or write the value here.`)
    return found
  })
}
