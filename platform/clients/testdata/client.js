// Every verb of npm's openwhisk, a step at a time: a header and what came, or the error's. PENDING has the tags to leave out.
'use strict'
const fs = require('fs')
const openwhisk = require(process.env.OPENWHISK)
const ow = openwhisk({ apihost: process.env.__OW_API_HOST, api_key: process.env.__OW_API_KEY, namespace: '_' })
const pending = (process.env.PENDING || '').split(',').filter(tag => tag)
const kind = 'nodejs:20'
const code = fs.readFileSync('echo.js', 'utf8')
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

// The record of an activation comes at its end.
async function record (get) {
  for (let i = 0; ; i++) {
    try { return await get() } catch (e) { if (i >= 100 || e.statusCode !== 404) throw e }
    await sleep(50)
  }
}

async function step (name, call) {
  const tag = name.startsWith('[') ? name.slice(1, name.indexOf(']')) : ''
  console.log('$ ' + name)
  if (pending.includes(tag)) return
  await sleep(2) // lists are ordered by the millisecond of the last change
  try {
    const value = await call()
    console.log(typeof value === 'string' ? value : JSON.stringify(value))
    return value
  } catch (e) {
    console.log(`${e.name}: ${e.message} [status ${e.statusCode}]`)
    if (e.error && e.error.response) console.log(JSON.stringify(e.error.response))
  }
}

async function main () {
  const { actions, packages, activations, triggers, rules, namespaces, feeds } = ow
  await step('namespaces.list', () => namespaces.list())

  await step('packages.create', () => packages.create({ name: 'pkg', package: { parameters: [{ key: 'who', value: 'package' }] } }))
  await step('packages.create again', () => packages.create({ name: 'pkg' }))
  await step('packages.update', () => packages.update({ name: 'pkg', package: { annotations: [{ key: 'description', value: 'd' }] } }))
  await step('packages.get', () => packages.get('pkg'))
  await step('packages.get missing', () => packages.get('nothing'))
  await step('packages.list', () => packages.list())
  await step('[binding] packages.list public', () => packages.list({ public: true }))
  await step('packages.list count', () => packages.list({ count: true }))
  await step('[binding] packages.create bound', () => packages.create({ name: 'bound', package: { binding: { namespace: '_', name: 'pkg' }, parameters: [{ key: 'who', value: 'binding' }] } }))
  await step('[binding] packages.get bound', () => packages.get('bound'))

  await step('actions.create', () => actions.create({ name: 'echo', action: code, kind, params: { a: 1 }, annotations: { description: 'echo' }, limits: { memory: 128, timeout: 30000 } }))
  await step('actions.create again', () => actions.create({ name: 'echo', action: code, kind }))
  await step('[kind] actions.create default kind', () => actions.create({ name: 'byDefault', action: code }))
  await step('[kind] actions.delete default kind', () => actions.delete('byDefault'))
  await step('actions.update', () => actions.update({ name: 'echo', action: code, kind, params: { a: 2 } }))
  await step('actions.create in package', () => actions.create({ name: 'pkg/double', action: { exec: { kind, code, main: 'double' } } }))
  await step('actions.create fail', () => actions.create({ name: 'fail', action: { exec: { kind, code, main: 'fail' } } }))
  await step('actions.create logs', () => actions.create({ name: 'logs', action: { exec: { kind, code, main: 'logs' } } }))
  await step('actions.create binary', () => actions.create({ name: 'binary', action: Buffer.from('PK\u0003\u0004 not a zip'), kind }))
  await step('actions.get', () => actions.get('echo'))
  await step('actions.get binary', () => actions.get('binary'))
  await step('actions.get missing', () => actions.get('nothing'))
  await step('actions.list', () => actions.list())
  await step('actions.list limit', () => actions.list({ limit: 1, skip: 1 }))
  await step('actions.list count', () => actions.list({ count: true }))

  const accepted = await step('actions.invoke', () => actions.invoke({ name: 'echo', params: { b: 'ü' } }))
  const id = accepted.activationId
  await step('activations.get', () => record(() => activations.get(id)))
  await step('activations.result', () => activations.result(id))
  await step('activations.logs', () => activations.logs(id))
  await step('actions.invoke blocking', () => actions.invoke({ name: 'echo', blocking: true, params: { b: 1 } }))
  await step('actions.invoke result', () => actions.invoke({ name: 'pkg/double', blocking: true, result: true, params: { n: 21 } }))
  await step('actions.invoke several', () => actions.invoke([{ name: 'echo', blocking: true, result: true }, { name: 'pkg/double', blocking: true, result: true, params: { n: 1 } }]))
  await step('actions.invoke fail', () => actions.invoke({ name: 'fail', blocking: true }))
  await step('actions.invoke fail result', () => actions.invoke({ name: 'fail', blocking: true, result: true }))
  await step('actions.invoke missing', () => actions.invoke({ name: 'nothing', blocking: true }))
  await step('[binding] actions.invoke bound', () => actions.invoke({ name: 'bound/double', blocking: true, result: true, params: { n: 2 } }))
  const logged = await step('actions.invoke logs', () => actions.invoke({ name: 'logs', blocking: true }))
  await step('activations.logs lines', () => record(() => activations.logs(logged.activationId)))
  await step('activations.list', async () => (await activations.list({ limit: 2 })).map(a => [a.name, a.statusCode]))
  await step('activations.list docs', async () => (await activations.list({ name: 'logs', docs: true })).map(a => [a.name, a.response.result]))
  await step('activations.get missing', () => activations.get('0123456789abcdef0123456789abcdef'))
  await step('activations.get malformed', () => activations.get('0123'))

  await step('[sequence] actions.create sequence', () => actions.create({ name: 'seq', sequence: ['/_/pkg/double', '/_/pkg/double'] }))
  await step('[sequence] actions.get sequence', () => actions.get('seq'))
  await step('[sequence] actions.invoke sequence', () => actions.invoke({ name: 'seq', blocking: true, result: true, params: { n: 3 } }))
  await step('[sequence] actions.create bad sequence', () => actions.create({ name: 'bad', sequence: ['/_/nothing'] }))

  await step('[trigger] triggers.create', () => triggers.create({ name: 'tick', trigger: { parameters: [{ key: 'at', value: 'noon' }] } }))
  await step('[trigger] triggers.create again', () => triggers.create({ name: 'tick' }))
  await step('[trigger] triggers.update', () => triggers.update({ name: 'tick', trigger: { annotations: [{ key: 'x', value: 1 }] } }))
  await step('[trigger] triggers.get', () => triggers.get('tick'))
  await step('[trigger] triggers.list', () => triggers.list())
  await step('[trigger] triggers.invoke without rules', () => triggers.invoke({ name: 'tick' }))
  await step('[rule] rules.create', () => rules.create({ name: 'onTick', trigger: 'tick', action: 'echo' }))
  await step('[rule] rules.create missing', () => rules.create({ name: 'onNothing', trigger: 'nothing', action: 'echo' }))
  await step('[rule] rules.get', () => rules.get('onTick'))
  await step('[rule] rules.list', () => rules.list())
  const fired = await step('[rule] triggers.invoke', () => triggers.invoke({ name: 'tick', params: { why: 'test' } }))
  await step('[rule] activations.get fired', async () => {
    const { name, response, annotations } = await record(() => activations.get(fired.activationId))
    return { name, response, annotations }
  })
  await step('[rule] rules.disable', () => rules.disable({ name: 'onTick' }))
  await step('[rule] rules.get disabled', () => rules.get('onTick'))
  await step('[rule] rules.enable', () => rules.enable({ name: 'onTick' }))
  await step('[rule] rules.update', () => rules.update({ name: 'onTick', trigger: 'tick', action: 'pkg/double' }))
  await step('[rule] rules.delete', () => rules.delete('onTick'))
  await step('[trigger] feeds.create', () => feeds.create({ name: 'echo', trigger: 'tick', params: { x: 1 } }))
  await step('[trigger] feeds.delete', () => feeds.delete({ name: 'echo', trigger: 'tick' }))
  await step('[trigger] triggers.delete', () => triggers.delete('tick'))
  await step('[trigger] triggers.get missing', () => triggers.get('tick'))

  await step('[sequence] actions.delete sequence', () => actions.delete('seq'))
  await step('[binding] packages.delete bound', () => packages.delete('bound'))
  await step('packages.delete not empty', () => packages.delete('pkg'))
  for (const name of ['echo', 'pkg/double', 'fail', 'logs', 'binary']) {
    await step('actions.delete ' + name, async () => (await actions.delete(name)).name)
  }
  await step('actions.delete missing', () => actions.delete('echo'))
  await step('packages.delete', () => packages.delete('pkg'))
}

main()
