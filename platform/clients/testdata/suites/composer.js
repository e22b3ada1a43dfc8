// Compositions of npm's openwhisk-composer on a server, in our words, after the subjects of that package's own tests. Those
// that need a Redis of their own (parallel, map) are left out.
'use strict'
const assert = require('assert')
const { test, refused, runAll } = require('./cases')
const composer = require(process.env.COMPOSER)
const client = require(process.env.COMPOSER + '/client')

const wsk = client({ apihost: process.env.__OW_API_HOST, api_key: process.env.__OW_API_KEY })
const name = 'composed'

const helpers = {
  halve: '({ n }) => ({ n: n / 2 })',
  grow: '({ n }) => ({ n: 3 * n + 1 })',
  odd: '({ n }) => ({ value: n % 2 === 1 })',
  more: '({ n }) => ({ value: n > 1 })',
  same: 'args => args'
}

async function deploy (composition) {
  await wsk.compositions.deploy(Object.assign({ name }, composition.compile()), true)
}

async function run (composition, params = {}) {
  await deploy(composition)
  return (await wsk.actions.invoke({ name, params, blocking: true })).response.result
}

// gives adds a case that ends well.
const gives = (title, make, params, result) =>
  test(title, async () => assert.deepStrictEqual(await run(make(), params), result))

// fails adds a case that ends with an error.
const fails = (title, make, params, error) => test(title, async () => {
  const e = await refused(run(make(), params))
  const got = e.error.response.result.error
  if (error instanceof RegExp) assert.match(got, error)
  else assert.deepStrictEqual(got, error)
})

// cannot adds a case of what composer itself refuses.
const cannot = (title, make) => test(title, async () => assert.throws(make, /Invalid argument|Too many arguments|must be|not valid/))

const c = composer
test('the helpers', async () => {
  for (const [helper, code] of Object.entries(helpers)) {
    await wsk.actions.update({ name: helper, action: `const main = ${code}` })
  }
})

// one action
gives('an action', () => c.action('same'), { n: 1 }, { n: 1 })
gives('an action by its full name', () => c.action('/_/same'), { n: 1 }, { n: 1 })
gives('an action of the catalog', () => c.action('/whisk.system/utils/echo'), { n: 1 }, { n: 1 })
fails('an action that is not there', () => c.action('nowhere'), {}, /Failed to resolve action|does not exist|nowhere/)
cannot('an action of no name', () => c.action(42))
cannot('an action of a name that cannot be', () => c.action('/a/b/c/d'))
gives('an action by its name alone', () => c.seq('same'), { n: 2 }, { n: 2 })
test('an action that the composition brings', async () => {
  const result = await run(c.action('/_/brought', { action: 'const main = x => ({ brought: x.n })' }), { n: 5 })
  assert.deepStrictEqual(result, { brought: 5 })
  await wsk.actions.delete('brought')
})

// values
gives('a number', () => c.literal(42), {}, { value: 42 })
gives('a text', () => c.literal('text'), {}, { value: 'text' })
gives('a truth', () => c.literal(true), {}, { value: true })
gives('null', () => c.literal(null), {}, { value: null })
gives('an object', () => c.literal({ a: [1] }), {}, { a: [1] })
gives('a list', () => c.literal([1, 2]), {}, { value: [1, 2] })
cannot('a function is no value', () => c.literal(() => 42))

// functions
gives('a function', () => c.function(({ n }) => n % 2 === 0), { n: 4 }, { value: true })
gives('a function as a text', () => c.function('({ n }) => n % 2 === 0'), { n: 3 }, { value: false })
gives('a function with a name', () => c.function(function isEven ({ n }) { return n % 2 === 0 }), { n: 4 }, { value: true })
gives('a function that answers nothing', () => c.function(({ n }) => { n++ }), { n: 4 }, { n: 4 })
gives('a function that changes what it gets', () => c.function(p => { p.n++ }), { n: 4 }, { n: 5 })
gives('a function that promises', () => c.function(({ n }) => Promise.resolve({ n: n + 1 })), { n: 4 }, { n: 5 })
fails('a function that throws', () => c.function(({ n }) => n.x.y), { n: 3 }, /Function combinator threw an exception at AST node root/)
fails('a function that answers an error', () => c.function(() => ({ error: 'mine', more: 1 })), {}, 'mine')
fails('a function that promises an error', () => c.function(() => Promise.resolve({ error: 'mine' })), {}, 'mine')
fails('a function that breaks its promise', () => c.function(() => Promise.reject(new Error('x'))), {}, /Function combinator threw an exception/)
fails('a function that answers a function', () => c.function(() => () => {}), {}, /Function combinator evaluated to a function type/)
cannot('a number is no function', () => c.function(42))

// one after the other
gives('an empty sequence', () => c.sequence(), { n: 1 }, { n: 1 })
gives('two actions', () => c.sequence('grow', 'halve'), { n: 5 }, { n: 8 })
gives('two actions by the short name', () => c.seq('grow', 'halve'), { n: 5 }, { n: 8 })
gives('a sequence of sequences', () => c.seq(c.seq('grow', 'halve'), c.seq('grow')), { n: 5 }, { n: 25 })
gives('functions and actions', () => c.seq(p => ({ n: p.n + 1 }), 'halve', ({ n }) => ({ n: n * 10 })), { n: 3 }, { n: 20 })
gives('many steps', () => c.seq(...Array(12).fill('same')), { n: 1 }, { n: 1 })
fails('an error ends a sequence', () => c.seq(() => ({ error: 'stop' }), () => ({ reached: true })), {}, 'stop')

// choices
gives('a choice that holds', () => c.if('odd', 'grow', 'halve'), { n: 3 }, { n: 10 })
gives('a choice that does not', () => c.if('odd', 'grow', 'halve'), { n: 4 }, { n: 2 })
gives('a choice without an alternative', () => c.if('odd', 'grow'), { n: 4 }, { n: 4 })
gives('a choice by a function', () => c.if(({ n }) => n > 3, 'halve', 'grow'), { n: 4 }, { n: 2 })
gives('a choice within a choice', () => c.if('odd', c.if('more', 'grow', 'same'), 'halve'), { n: 1 }, { n: 1 })
gives('a choice whose test is what goes on', () => c.if_nosave('odd', p => ({ got: p.value }), p => ({ got: p.value })), { n: 3 }, { got: true })
gives('a choice whose test is what goes on, and does not hold', () => c.if_nosave('odd', 'same', p => ({ got: p.value })), { n: 4 }, { got: false })
cannot('a choice of three branches', () => c.if('odd', 'grow', 'halve', 'same'))
cannot('a choice without a test', () => c.if())

// loops
gives('a loop', () => c.while('more', 'halve'), { n: 8 }, { n: 1 })
gives('a loop that never runs', () => c.while('more', 'halve'), { n: 1 }, { n: 1 })
gives('a loop by functions', () => c.while(({ n }) => n < 20, ({ n }) => ({ n: n + 7 })), { n: 1 }, { n: 22 })
gives('a loop around a choice', () => c.while('more', c.if('odd', 'grow', 'halve')), { n: 6 }, { n: 1 })
gives('a loop whose test goes on', () => c.while_nosave(({ n }) => ({ n, value: n !== 1 }), ({ n }) => ({ n: n - 1 })), { n: 4 }, { value: false, n: 1 })
gives('a loop that runs at least once', () => c.dowhile('halve', 'more'), { n: 8 }, { n: 1 })
gives('a loop that runs exactly once', () => c.dowhile(({ n }) => ({ n: n - 1 }), 'more'), { n: 1 }, { n: 0 })
gives('a loop at least once whose test goes on', () => c.dowhile_nosave(({ n }) => ({ n: n - 1 }), ({ n }) => ({ n, value: n !== 1 })), { n: 4 }, { value: false, n: 1 })
gives('a number of times', () => c.repeat(3, 'halve'), { n: 8 }, { n: 1 })
gives('no times', () => c.repeat(0, 'halve'), { n: 8 }, { n: 8 })
cannot('a number of times that is none', () => c.repeat('often', 'halve'))
cannot('a loop of three parts', () => c.while('more', 'halve', 'same'))

// errors
gives('nothing is caught where nothing is thrown', () => c.try('same', () => ({ caught: true })), { n: 1 }, { n: 1 })
gives('an error is caught', () => c.try(() => ({ error: 'mine' }), ({ error }) => ({ caught: error })), {}, { caught: 'mine' })
gives('what comes after an error within is left out', () => c.try(c.seq(() => ({ error: 'mine' }), () => ({ reached: true })), ({ error }) => ({ caught: error })), {}, { caught: 'mine' })
gives('what comes after the handler goes on', () => c.seq(c.try(() => ({ error: 'mine' }), ({ error }) => ({ message: error })), p => ({ after: p.message })), {}, { after: 'mine' })
gives('an action that is not there is caught', () => c.try('nowhere', () => ({ caught: true })), {}, { caught: true })
gives('an error of the handler is caught outside', () => c.try(c.try(() => ({ error: 'inner' }), () => ({ error: 'outer' })), ({ error }) => ({ caught: error })), {}, { caught: 'outer' })
gives('the innermost handler', () => c.try(c.try(() => ({ error: 'mine' }), () => ({ by: 'inner' })), () => ({ by: 'outer' })), {}, { by: 'inner' })
fails('a handler may fail', () => c.try(() => ({ error: 'one' }), () => ({ error: 'two' })), {}, 'two')
gives('at the end where nothing is thrown', () => c.finally('same', p => ({ ended: p.n })), { n: 1 }, { ended: 1 })
gives('at the end of an error', () => c.finally(() => ({ error: 'mine' }), ({ error }) => ({ ended: error })), {}, { ended: 'mine' })
cannot('a handler alone', () => c.try())
gives('tried again until it is well', () => c.let({ x: 2 }, c.retry(2, () => x-- > 0 ? { error: 'not yet' } : 42)), {}, { value: 42 }) // eslint-disable-line no-undef
fails('tried again too rarely', () => c.let({ x: 2 }, c.retry(1, () => x-- > 0 ? { error: 'not yet' } : 42)), {}, 'not yet') // eslint-disable-line no-undef

// variables
/* eslint-disable no-undef */
gives('a variable', () => c.let({ x: 42 }, () => x), {}, { value: 42 })
gives('a variable that is null', () => c.let({ x: null }, () => x), {}, { value: null })
gives('a variable that changes', () => c.let({ x: 1 }, () => { x = 5 }, () => x), {}, { value: 5 })
gives('a variable over actions', () => c.let({ x: 3 }, 'same', 'grow', ({ n }) => ({ sum: n + x })), { n: 1 }, { sum: 7 })
gives('a variable within another of its name', () => c.let({ x: 42 }, c.let({ x: 69 }, () => x)), {}, { value: 69 })
gives('the outer variable is as it was', () => c.let({ x: 42 }, c.let({ x: 69 }, () => { x = 1 }), () => x), {}, { value: 42 })
gives('variables of several names', () => c.let({ x: 1, y: 2 }, c.let({ z: 3 }, () => x + y + z)), {}, { value: 6 })
gives('a masked variable', () => c.let({ x: 42 }, c.let({ x: 69 }, c.mask(() => x))), {}, { value: 42 })
gives('a mask within a mask', () => c.let({ x: 1 }, c.let({ x: 2 }, c.let({ x: 3 }, c.mask(c.mask(() => x))))), {}, { value: 1 })
gives('a variable within a mask', () => c.let({ x: 42 }, c.let({ x: 69 }, c.mask(c.let({ x: -1 }, () => x)))), {}, { value: -1 })
fails('a variable that is not there', () => c.let({ x: 42 }, c.seq(c.mask(() => x.y.z))), {}, /Function combinator threw an exception/)
gives('what is kept beside the result', () => c.retain('grow'), { n: 3 }, { params: { n: 3 }, result: { n: 10 } })
fails('an error is not kept', () => c.retain(() => ({ error: 'mine' })), { n: 3 }, 'mine')
gives('an error is kept where it is asked for', () => c.retain_catch(() => ({ error: 'mine' })), { n: 3 }, { params: { n: 3 }, result: { error: 'mine' } })
gives('what is merged', () => c.merge('grow'), { n: 3, p: 4 }, { n: 10, p: 4 })
/* eslint-enable no-undef */

// the rest
gives('nothing at all', () => c.empty(), { n: 1 }, { n: 1 })
gives('a step chosen at run time', () => c.seq(() => ({ type: 'action', name: 'grow', params: { n: 2 } }), c.dynamic()), {}, { n: 7 })
fails('a step chosen at run time, badly', () => c.dynamic(), { n: 1 }, /Incorrect use of the dynamic combinator/)
test('a composition that is not waited for', async () => {
  const got = await run(c.seq(c.async('same'), p => ({ id: p.activationId, method: p.method })), { n: 1 })
  assert.match(got.id, /^[0-9a-f]{32}$/)
  assert.strictEqual(got.method, 'async')
})
test('a composition within another', async () => {
  await wsk.compositions.deploy(Object.assign({ name: 'inner' }, c.seq('grow', 'halve').compile()), true)
  assert.deepStrictEqual(await run(c.seq('inner', 'halve'), { n: 5 }), { n: 4 })
  await wsk.actions.delete('inner')
})
test('the record of a composition', async () => {
  await deploy(c.seq('grow', 'halve'))
  const got = await wsk.actions.invoke({ name, params: { n: 5 }, blocking: true })
  assert(got.annotations.some(a => a.key === 'conductor' && a.value === true))
  assert(got.annotations.some(a => a.key === 'kind' && a.value === 'sequence'))
  assert(got.logs.length >= 5, `${got.logs.length} activations`) // three turns and two actions
})

runAll()
