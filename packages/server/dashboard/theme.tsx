import { useState } from 'preact/hooks'

type Theme = 'auto' | 'light' | 'dark'
const NAME = 'sluice-theme'
const themes: readonly Theme[] = ['auto', 'light', 'dark']

function chosen(): Theme {
  const saved = localStorage.getItem(NAME)
  return themes.find((theme) => theme === saved) ?? 'auto'
}

function apply(theme: Theme): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

/** ThemeSwitch selects light, dark, or the system's setting, and saves it in the browser. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(chosen)
  apply(theme)
  return (
    <label class="theme">
      <span class="small">Theme</span>
      <select
        value={theme}
        onChange={({ currentTarget }) => {
          localStorage.setItem(NAME, currentTarget.value)
          setTheme(chosen())
        }}
      >
        <option value="auto">Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  )
}

/** colour returns the current value of a colour variable, for canvases. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name)
}
