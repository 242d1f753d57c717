import { ThemeSwitch } from './theme.tsx'

/** Header is the top bar of both pages. */
export function Header({ page }: { page: 'dashboard' | 'playground' }) {
  return (
    <header class="top">
      <span class="brand">
        <span class="mark" aria-hidden="true" />
        Sluice
      </span>
      <nav aria-label="Pages">
        <a href="/" aria-current={page === 'dashboard' ? 'page' : undefined}>
          Dashboard
        </a>
        <a href="/play" aria-current={page === 'playground' ? 'page' : undefined}>
          Playground
        </a>
      </nav>
      <ThemeSwitch />
    </header>
  )
}
