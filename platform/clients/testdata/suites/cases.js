// Runs cases one after the other, or every so many of them as EVERY says, and prints "ok NAME" or "not ok NAME: why".
'use strict'
const assert = require('assert')

const cases = []

// test adds a case.
exports.test = (name, run) => cases.push({ name, run })

// refused wants a promise to be rejected, by a status if one is given.
exports.refused = async (promise, status) => {
  try {
    await promise
  } catch (e) {
    if (status !== undefined) assert.strictEqual(e.statusCode, status, e.message)
    return e
  }
  assert.fail('it was not refused')
}

// eventually repeats what may be too early.
exports.eventually = async run => {
  const end = Date.now() + 30000
  for (;;) {
    try {
      return await run()
    } catch (e) {
      if (Date.now() > end) throw e
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
}

exports.runAll = async () => {
  let failed = 0
  const every = Number(process.env.EVERY || 1)
  for (const { name, run } of cases.filter((_, i) => i % every === 0)) {
    try {
      await run()
      console.log('ok ' + name)
    } catch (e) {
      failed++
      console.log('not ok ' + name + ': ' + String((e && e.message) || e).replace(/\n/g, ' | '))
    }
  }
  process.exitCode = failed ? 1 : 0
}
