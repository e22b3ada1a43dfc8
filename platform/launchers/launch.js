// Serves OpenWhisk's /init and /run for one JavaScript action, on "unix:PATH" or "HOST:PORT", its last argument. The one
// before it is the text of archive.js. As OpenWhisk's own runtime does, it answers a rejected promise with {"error": ...} and
// 200, and a thrown error with 502. Where /init allows it, several activations run at once.
'use strict'
const fs = require('fs')
const http = require('http')
const path = require('path')
const Module = require('module')
const url = require('url')
const { AsyncLocalStorage } = require('async_hooks')

const SENTINEL = 'XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX'
const NO_RESULT = 'The action did not return a dictionary or array.'
let action
let silent = false // whoever asks knows by the answer where an activation's log ends

// load finds an action's function, in its one file or in its archive.
async function load (value, main) {
  const data = value.binary ? Buffer.from(value.code, 'base64') : Buffer.from(value.code)
  const zipped = value.binary && data.subarray(0, 2).toString() === 'PK'
  const found = zipped ? await loadFolder(archive().unpack(data, 'action'), main) : loadText(data.toString(), main)
  if (typeof found !== 'function') throw new Error("Action entrypoint '" + main + "' is not a function.")
  return found
}

function loadText (code, main) {
  const module = { exports: {} }
  const make = new Function('require', 'module', 'exports', code + '\nreturn typeof ' + main + ' === "function" ? ' + main + ' : exports.' + main)
  return make(require, module, module.exports)
}

// archive is the module that unpacks archives, whose text is an argument.
function archive () {
  const module = new Module('archive')
  module._compile(process.argv[process.argv.length - 2], 'archive.js')
  return module.exports
}

// loadFolder takes what package.json names, else index.js or index.mjs.
async function loadFolder (folder, main) {
  const has = name => fs.existsSync(path.join(folder, name))
  if (!has('package.json') && !has('index.js') && !has('index.mjs')) {
    throw new Error('Zipped actions must contain either package.json or index.js at the root.')
  }
  process.chdir(folder)
  const named = has('package.json') ? JSON.parse(fs.readFileSync(path.join(folder, 'package.json'))) : {}
  const file = path.join(folder, named.main || (has('index.js') ? 'index.js' : 'index.mjs'))
  const asModule = named.type === 'module' || file.endsWith('.mjs')
  const module = asModule ? await import(url.pathToFileURL(file).href) : require(named.main ? file : folder)
  return main.split('.').reduce((in_, name) => in_ && in_[name], module)
}

// OpenWhisk's image of Node.js has the package openwhisk in it; where this machine lacks it, that is said.
const resolve = Module._resolveFilename
Module._resolveFilename = function (name, ...rest) {
  try {
    return resolve.call(this, name, ...rest)
  } catch (e) {
    if (name === 'openwhisk' && e.code === 'MODULE_NOT_FOUND') {
      e.message = "The package 'openwhisk', which OpenWhisk's own image has, is not on this machine: put it into the action's archive, " +
        'or start the platform with --node-modules FOLDER, where `npm install --prefix FOLDER openwhisk` has put it. ' + e.message
    }
    throw e
  }
}

async function init (value) {
  if (action) {
    const text = 'Cannot initialize the action more than once.'
    console.error(text)
    return [403, { error: text }]
  }
  if (!value.code) return [403, { error: 'Missing main/no code to execute.' }]
  Object.assign(process.env, value.env)
  if (value.concurrency > 1) share()
  try {
    action = await load(value, value.main || 'main')
    if (value.sentinels !== false) return [200, { OK: true }]
    silent = true
    return [200, { OK: true, sentinels: false }]
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

// Where several activations run at once, each line begins with the id of the one that printed it. What is told of a
// request in the environment is that of the last one that came, as in OpenWhisk.
const MARK = '\0'
const LONGEST = 1 << 16
let running // the log of the activation that the code at hand runs for

function share () {
  running = new AsyncLocalStorage()
  for (const stream of [process.stdout, process.stderr]) {
    const write = stream.write.bind(stream)
    stream.write = (data, encoding, done) => {
      const log = running.getStore()
      if (!log) return write(data, encoding, done)
      if (typeof encoding === 'function') [encoding, done] = [undefined, encoding]
      const text = typeof data === 'string' ? data : Buffer.from(data).toString()
      const lines = ((log.parts.get(stream) || '') + text).split('\n')
      if (lines[lines.length - 1].length > LONGEST) lines.push('')
      log.parts.set(stream, lines.pop())
      return write(lines.map(line => MARK + log.id + MARK + line + '\n').join(''), done)
    }
  }
}

// within runs f as an activation of its own.
function within (id, f) {
  return running ? running.run({ id, parts: new Map() }, f) : f()
}

// finish ends what an activation left of a line.
function finish () {
  const log = running && running.getStore()
  if (!log) return
  for (const [stream, rest] of log.parts) {
    if (rest) stream.write('\n')
  }
}

function end () {
  finish()
  if (silent) return
  process.stdout.write(SENTINEL + '\n')
  process.stderr.write(SENTINEL + '\n')
}

async function answer (path, request) {
  if (path === '/init') {
    const done = await init(request.value || {})
    if (done[0] !== 200) end()
    return done
  }
  if (path !== '/run') return [404, { error: 'there is only /init and /run' }]
  return within(request.activation_id, async () => {
    const done = await run(request)
    end()
    return done
  })
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
