// @ts-check
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'
import { pages } from '../pages.mjs'

const folders = {
  guide: 'Guide',
  reference: 'Reference',
  operate: 'Operate',
  migrate: 'Migrate',
  internals: 'Internals',
}

/** The pages that an index lists, in its order and by its titles. */
function listed(/** @type {string} */ folder) {
  const index = readFileSync(join(pages, folder, 'index.md'), 'utf8')
  const links = [...index.matchAll(/\[([^\]]+)\]\(([\w./-]+)\.md\)/g)]
  return links.map(([, text, path]) => ({
    text: text.replaceAll('`', ''),
    link: join('/', folder, path).replace(/index$/, ''),
  }))
}

/** The pages of the API: one for each entry point. */
const api = {
  text: 'API',
  link: '/reference/api/',
  collapsed: true,
  items: listed('reference/api')
    .map(({ link }) => ({ text: link.replace(/^\/reference\/api\/|\/$/g, ''), link }))
    .sort((a, b) => a.text.localeCompare(b.text)),
}

const sidebar = Object.entries(folders).map(([folder, text]) => {
  const items = listed(folder)
  return {
    ...{ text, link: `/${folder}/`, collapsed: true },
    items: folder === 'reference' ? [...items, api] : items,
  }
})

const icon =
  'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="%233451b2"/><path d="M4 4h2v8H4zm6 0h2v8h-2zM6 9h4v3H6z" fill="white"/></svg>'

export default defineConfig({
  title: 'Sluice',
  description: 'An exact rate limiter for TypeScript, and a service built on it',
  srcDir: '.pages',
  outDir: 'dist',
  cacheDir: '.cache',
  cleanUrls: false,
  lastUpdated: false,
  head: [['link', { rel: 'icon', href: icon }]],
  markdown: {
    // As GitHub names anchors, so that a link works in both.
    anchor: {
      slugify: (text) =>
        text
          .toLowerCase()
          .replace(/[^\p{L}\p{N} _-]/gu, '')
          .replaceAll(' ', '-'),
    },
    theme: { light: 'github-light', dark: 'github-dark' },
    languageAlias: { caddy: 'nginx', promql: 'sql' },
  },
  themeConfig: {
    nav: Object.entries(folders).map(([folder, text]) => ({
      text,
      link: `/${folder}/`,
      activeMatch: `^/${folder}/`,
    })),
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
  },
})
