// Serves OpenWhisk's /init and /run for one JavaScript action, on "unix:PATH" or "HOST:PORT". As OpenWhisk's own runtime
// does, it answers a rejected promise with {"error": ...} and 200, and a thrown error with 502.
'use strict'
const http = require('http')

const SENTINEL = 'XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX'
const NO_RESULT = 'The action did not return a dictionary or array.'
let action

function source (value) {
  if (!value.binary) return value.code
  const data = Buffer.from(value.code, 'base64')
  if (data.subarray(0, 2).toString() === 'PK') {
    throw new Error('zip archives are not supported here: send the action as one source file')
  }
  return data.toString()
}

function load (code, main) {
  const module = { exports: {} }
  const make = new Function('require', 'module', 'exports', code + '\nreturn typeof ' + main + ' === "function" ? ' + main + ' : exports.' + main)
  const found = make(require, module, module.exports)
  if (typeof found !== 'function') throw new Error("Action entrypoint '" + main + "' is not a function.")
  return found
}

function init (value) {
  if (action) {
    const text = 'Cannot initialize the action more than once.'
    console.error(text)
    return [403, { error: text }]
  }
  if (!value.code) return [403, { error: 'Missing main/no code to execute.' }]
  Object.assign(process.env, value.env)
  try {
    action = load(source(value), value.main || 'main')
    return [200, { OK: true }]
  } catch (e) {
    console.error('Error during initialization:', e)
    return [502, { error: 'Initialization has failed due to: ' + (e && e.stack ? e.stack : e) }]
  }
}

// An error's own properties do not show in JSON: name, message and stack are told apart.
function told (e) {
  if (!e) return {}
  return e instanceof Error ? { name: e.name, message: e.message, stack: e.stack, ...e } : e
}

async function run (request) {
  if (!action) return [500, { error: 'System not ready, no action defined yet.' }]
  for (const [key, value] of Object.entries(request)) {
    if (key !== 'value') process.env['__OW_' + key.toUpperCase()] = String(value)
  }
  let promised
  try {
    promised = action(request.value || {})
  } catch (e) {
    console.error(e)
    return [502, { error: 'An error has occurred: ' + e }]
  }
  let result
  try {
    result = await promised
  } catch (e) {
    return [200, { error: told(e) }]
  }
  if (result === undefined) result = {}
  if (typeof result !== 'object' || result === null) return [502, { error: NO_RESULT }]
  return [200, result]
}

function end () {
  process.stdout.write(SENTINEL + '\n')
  process.stderr.write(SENTINEL + '\n')
}

async function answer (path, request) {
  if (path === '/init') {
    const done = init(request.value || {})
    if (done[0] !== 200) end()
    return done
  }
  if (path !== '/run') return [404, { error: 'there is only /init and /run' }]
  const done = await run(request)
  end()
  return done
}

function written ([status, value]) {
  try {
    return [status, Buffer.from(JSON.stringify(value))]
  } catch (e) {
    console.error(e)
    return [502, Buffer.from(JSON.stringify({ error: NO_RESULT }))]
  }
}

const server = http.createServer((req, res) => {
  const parts = []
  req.on('data', part => parts.push(part))
  req.on('end', async () => {
    const body = Buffer.concat(parts).toString()
    const [status, data] = written(await answer(req.url, body ? JSON.parse(body) : {}))
    res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': data.length })
    res.end(data)
  })
})
server.timeout = server.requestTimeout = server.headersTimeout = 0 // an action may take hours

const address = process.argv[process.argv.length - 1]
if (address.startsWith('unix:')) {
  server.listen({ path: address.slice('unix:'.length) })
} else {
  const at = address.lastIndexOf(':')
  server.listen({ host: address.slice(0, at), port: Number(address.slice(at + 1)) })
}
