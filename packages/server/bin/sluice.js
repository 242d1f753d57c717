#!/usr/bin/env node
try {
  await import('../dist/cli/cli.js')
} catch (error) {
  // A missing file is a missing build; a missing package would say "Cannot find package".
  const unbuilt =
    error.code === 'ERR_MODULE_NOT_FOUND' && error.message.startsWith('Cannot find module')
  if (!unbuilt) throw error
  console.error('sluice: the program has not been built yet. Run: npm run build')
  process.exitCode = 1
}
