// What a program does with npm's openwhisk, in our words, after the subjects of that package's own integration tests.
'use strict'
const assert = require('assert')
const { test, refused, eventually, runAll } = require('./cases')
const openwhisk = require(process.env.OPENWHISK)

const ow = openwhisk({ apihost: process.env.__OW_API_HOST, api_key: process.env.__OW_API_KEY })
const code = 'function main(args) { return args }'
const own = list => {
  assert(Array.isArray(list))
  for (const entity of list) assert.strictEqual(entity.namespace.split('/')[0], 'guest')
}
const archive = Buffer.from(require('./archive').index, 'base64')

for (const kind of ['actions', 'packages', 'triggers', 'rules', 'activations']) {
  test(`list ${kind}`, async () => own(await ow[kind].list()))
  test(`list ${kind} of a namespace`, async () => own(await ow[kind].list({ namespace: 'guest' })))
}

test('an action is created, read and deleted', async () => {
  const made = await ow.actions.create({ name: 'a', action: code })
  assert.strictEqual(made.name, 'a')
  assert.strictEqual(made.namespace, 'guest')
  assert.strictEqual(made.exec.code, code)
  assert(made.exec.kind.startsWith('nodejs:'))
  assert.strictEqual((await ow.actions.get({ name: 'a' })).name, 'a')
  await ow.actions.delete({ name: 'a' })
  await refused(ow.actions.get({ name: 'a' }), 404)
})

test('an action is created and updated', async () => {
  await ow.actions.create({ name: 'a', action: code })
  const updated = await ow.actions.update({ name: 'a', action: 'function main() { return {} }' })
  assert.strictEqual(updated.exec.code, 'function main() { return {} }')
  assert.strictEqual(updated.version, '0.0.2')
  await ow.actions.delete('a')
})

test('parameters of an action', async () => {
  const made = await ow.actions.create({ name: 'a', action: code, params: { hello: 'world' } })
  assert.deepStrictEqual(made.parameters, [{ key: 'hello', value: 'world' }])
  const updated = await ow.actions.update({ name: 'a', action: code, params: { foo: 'bar' } })
  assert.deepStrictEqual(updated.parameters, [{ key: 'foo', value: 'bar' }])
  await ow.actions.delete('a')
})

test('annotations and limits of an action', async () => {
  const made = await ow.actions.create({ name: 'a', action: code, annotations: { mine: 1 }, limits: { timeout: 5000, memory: 128 } })
  assert(made.annotations.some(a => a.key === 'mine' && a.value === 1))
  assert.strictEqual(made.limits.timeout, 5000)
  await ow.actions.delete('a')
})

test('an action that exists', async () => {
  await ow.actions.create({ name: 'a', action: code })
  await refused(ow.actions.create({ name: 'a', action: code }), 409)
  await ow.actions.delete('a')
})

test('an action by its full name', async () => {
  const got = await ow.actions.invoke({ name: '/whisk.system/utils/sort', blocking: true, params: { lines: ['b', 'a'] } })
  assert.strictEqual(got.response.success, true)
  assert.deepStrictEqual(got.response.result.lines, ['a', 'b'])
})

test('an action of several files', async () => {
  await ow.actions.create({ name: 'z', action: archive })
  const got = await ow.actions.invoke({ name: 'z', params: { hello: 'world' }, blocking: true })
  assert.deepStrictEqual(got.response.result, { hello: 'world' })
  assert.strictEqual(got.response.success, true)
  await ow.actions.delete('z')
})

test('only the result', async () => {
  await ow.actions.create({ name: 'a', action: code })
  assert.deepStrictEqual(await ow.actions.invoke({ name: 'a', params: { n: 1 }, blocking: true, result: true }), { n: 1 })
  await ow.actions.delete('a')
})

test('an action that fails', async () => {
  await ow.actions.create({ name: 'a', action: 'function main() { return { error: "mine" } }' })
  const e = await refused(ow.actions.invoke({ name: 'a', blocking: true }), 502)
  assert.strictEqual(e.error.response.result.error, 'mine')
  await ow.actions.delete('a')
})

test('an invocation that is not waited for', async () => {
  await ow.actions.create({ name: 'a', action: code })
  const { activationId } = await ow.actions.invoke({ name: 'a', params: { n: 7 } })
  const got = await eventually(() => ow.activations.get({ name: activationId }))
  assert.deepStrictEqual(got.response.result, { n: 7 })
  await ow.actions.delete('a')
})

test('logs and result of an activation', async () => {
  await ow.actions.create({ name: 'a', action: 'function main() { console.log("a line"); return { n: 1 } }' })
  const { activationId } = await ow.actions.invoke({ name: 'a', blocking: true })
  const { logs } = await eventually(() => ow.activations.logs(activationId))
  assert.match(logs[0], /stdout: a line$/)
  assert.deepStrictEqual((await ow.activations.result(activationId)).result, { n: 1 })
  await ow.actions.delete('a')
})

test('activations by name and number', async () => {
  await ow.actions.create({ name: 'listed', action: code })
  await ow.actions.invoke({ name: 'listed', blocking: true })
  await eventually(async () => {
    const list = await ow.activations.list({ name: 'listed', limit: 1 })
    assert.strictEqual(list.length, 1)
    assert.strictEqual(list[0].name, 'listed')
  })
  await ow.actions.delete('listed')
})

test('a sequence', async () => {
  await ow.actions.create({ name: 'plus', action: 'function main(a) { return { n: a.n + 1 } }' })
  await ow.actions.create({ name: 's', sequence: ['/guest/plus', '/guest/plus'] })
  assert.deepStrictEqual(await ow.actions.invoke({ name: 's', params: { n: 1 }, blocking: true, result: true }), { n: 3 })
  await ow.actions.delete('s')
  await ow.actions.delete('plus')
})

test('a package is created, read, updated and deleted', async () => {
  const made = await ow.packages.create({ name: 'p' })
  assert.strictEqual(made.name, 'p')
  const updated = await ow.packages.update({ name: 'p', package: { parameters: [{ key: 'a', value: 1 }], publish: true } })
  assert.strictEqual(updated.publish, true)
  assert.deepStrictEqual((await ow.packages.get({ name: 'p' })).parameters, [{ key: 'a', value: 1 }])
  await ow.packages.delete({ name: 'p' })
  await refused(ow.packages.get({ name: 'p' }), 404)
})

test('a package that is not there', async () => refused(ow.packages.get({ name: 'none' }), 404))

test('an action within a package', async () => {
  await ow.packages.create({ name: 'p' })
  await ow.actions.create({ name: 'p/a', action: code })
  assert.deepStrictEqual(await ow.actions.invoke({ name: 'p/a', params: { n: 1 }, blocking: true, result: true }), { n: 1 })
  await ow.actions.delete('p/a')
  await ow.packages.delete('p')
})

test('a trigger is created, read, updated and deleted', async () => {
  const made = await ow.triggers.create({ name: 't' })
  assert.strictEqual(made.name, 't')
  const updated = await ow.triggers.update({ name: 't', trigger: { parameters: [{ key: 'a', value: 1 }] } })
  assert.deepStrictEqual(updated.parameters, [{ key: 'a', value: 1 }])
  assert.strictEqual((await ow.triggers.get({ name: 't' })).name, 't')
  await ow.triggers.delete({ name: 't' })
  await refused(ow.triggers.get({ name: 't' }), 404)
})

test('a trigger that is fired', async () => {
  await ow.triggers.create({ name: 't' })
  await ow.actions.create({ name: 'a', action: code })
  await ow.rules.create({ name: 'r', action: 'a', trigger: 't' })
  const { activationId } = await ow.triggers.invoke({ name: 't', params: { hello: 'world' } })
  assert.match(activationId, /^[0-9a-f]{32}$/)
  await ow.rules.delete({ name: 'r' })
  await ow.actions.delete('a')
  await ow.triggers.delete('t')
})

test('a rule is created, read, switched off and on, updated and deleted', async () => {
  await ow.triggers.create({ name: 't' })
  await ow.actions.create({ name: 'a', action: code })
  await ow.actions.create({ name: 'b', action: code })
  const made = await ow.rules.create({ name: 'r', action: 'a', trigger: 't' })
  assert.strictEqual(made.name, 'r')
  await ow.rules.disable({ name: 'r' })
  assert.strictEqual((await ow.rules.get({ name: 'r' })).status, 'inactive')
  await ow.rules.enable({ name: 'r' })
  assert.strictEqual((await ow.rules.get({ name: 'r' })).status, 'active')
  await ow.rules.update({ name: 'r', action: 'b', trigger: 't' })
  assert.strictEqual((await ow.rules.get({ name: 'r' })).action.name, 'b')
  await ow.rules.delete({ name: 'r' })
  await refused(ow.rules.get({ name: 'r' }), 404)
  for (const name of ['a', 'b']) await ow.actions.delete(name)
  await ow.triggers.delete('t')
})

test('a feed is created, read, updated and deleted with its trigger', async () => {
  await ow.actions.create({ name: 'feed', action: 'function main(a) { return { event: a.lifecycleEvent, trigger: a.triggerName } }' })
  await ow.triggers.create({ name: 't' })
  for (const [verb, event] of [['create', 'CREATE'], ['get', 'READ'], ['update', 'UPDATE'], ['delete', 'DELETE']]) {
    const got = await ow.feeds[verb]({ feedName: 'feed', trigger: 't', params: { topic: 'x' } })
    assert.strictEqual(got.response.result.event, event)
    assert.match(got.response.result.trigger, /^\/\w+\/t$/)
  }
  await ow.triggers.delete('t')
  await ow.actions.delete('feed')
})

test('namespaces', async () => assert.deepStrictEqual(await ow.namespaces.list(), ['guest']))

test('an action that calls another by its own key', async () => {
  await ow.actions.create({ name: 'plus', action: 'function main(a) { return { n: a.n + 1 } }' })
  await ow.actions.create({
    name: 'calls', annotations: { 'provide-api-key': true },
    action: 'const ow = require("openwhisk"); function main(a) { return ow().actions.invoke({ name: "plus", params: a, blocking: true, result: true }) }'
  })
  assert.deepStrictEqual(await ow.actions.invoke({ name: 'calls', params: { n: 1 }, blocking: true, result: true }), { n: 2 })
  for (const name of ['calls', 'plus']) await ow.actions.delete(name)
})

test('a wrong key', async () => {
  const stranger = openwhisk({ apihost: process.env.__OW_API_HOST, api_key: 'nobody:knows' })
  await refused(stranger.actions.list(), 401)
})

test('routes without a gateway are refused', async () => {
  await refused(ow.routes.create({ relpath: '/a', operation: 'get', action: 'a' }), 404)
})

runAll()
