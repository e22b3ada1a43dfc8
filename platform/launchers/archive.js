// Unpacks an action's zip archive into a folder, and nothing outside of it. The archive is whoever's the action is: names
// that lead elsewhere, links out of the folder, what comes twice and what is too much are refused, before or while it is
// written. Links are made last, so that no file is written through one.
'use strict'
const fs = require('fs')
const path = require('path')
const zlib = require('zlib')

const MOST_FILES = 50000
const MOST_BYTES = 512 * 1024 * 1024
const LONGEST_NAME = 1024

function refuse (why) { throw new Error(why) }

// entries reads the list at the archive's end: its last record says where the list is (PKWARE's APPNOTE, 4.3.12 and 4.3.16).
function entries (data) {
  let end = data.length - 22
  for (const first = Math.max(0, end - 0xffff); end >= first && data.readUInt32LE(end) !== 0x06054b50;) end--
  if (end < 0 || data.readUInt32LE(end) !== 0x06054b50) refuse('the archive cannot be unpacked: it has no end')
  const count = data.readUInt16LE(end + 10)
  if (count > MOST_FILES) refuse(`the archive has more than ${MOST_FILES} files`)
  const list = []
  for (let at = data.readUInt32LE(end + 16), n = 0; n < count; n++) {
    if (data.readUInt32LE(at) !== 0x02014b50) refuse('the archive cannot be unpacked: its list is broken')
    const nameLength = data.readUInt16LE(at + 28)
    const from = at + 46
    list.push({
      name: data.toString('utf8', from, from + nameLength),
      encrypted: (data.readUInt16LE(at + 8) & 1) !== 0,
      method: data.readUInt16LE(at + 10),
      crc: data.readUInt32LE(at + 16),
      packed: data.readUInt32LE(at + 20),
      size: data.readUInt32LE(at + 24),
      mode: data.readUInt32LE(at + 38) >>> 16,
      at: data.readUInt32LE(at + 42)
    })
    at = from + nameLength + data.readUInt16LE(at + 30) + data.readUInt16LE(at + 32)
  }
  return list
}

function contents (data, entry) {
  if (entry.encrypted || (entry.method !== 0 && entry.method !== 8)) {
    refuse(`'${entry.name}' is encrypted, or packed in another way than deflate`)
  }
  if (data.readUInt32LE(entry.at) !== 0x04034b50) refuse('the archive cannot be unpacked: its list is broken')
  const from = entry.at + 30 + data.readUInt16LE(entry.at + 26) + data.readUInt16LE(entry.at + 28)
  if (from + entry.packed > data.length) refuse('the archive cannot be unpacked: it ends too early')
  const packed = data.subarray(from, from + entry.packed)
  const found = entry.method === 0 ? packed : zlib.inflateRawSync(packed, { maxOutputLength: Math.max(1, entry.size) })
  if (found.length !== entry.size) refuse(`'${entry.name}' is not as long as the archive says`)
  if (zlib.crc32 && zlib.crc32(found) !== entry.crc) refuse(`'${entry.name}' is damaged`)
  return found
}

function place (folder, name) {
  const parts = name.replace(/\/$/, '').split('/')
  if (name.length > LONGEST_NAME || name.includes('\0') || parts.some(part => part === '' || part === '.' || part === '..')) {
    refuse(`the archive's name '${name.slice(0, 100)}' leads out of it`)
  }
  return path.join(folder, ...parts)
}

function inside (folder, where) { return where === folder || where.startsWith(folder + path.sep) }

function link (folder, where, entry, data) {
  const out = `the link '${entry.name.slice(0, 100)}' leads out of the archive`
  if (entry.size > LONGEST_NAME) refuse(out)
  const target = contents(data, entry).toString()
  if (path.isAbsolute(target) || !inside(folder, path.resolve(path.dirname(where), target))) refuse(out)
  fs.symlinkSync(target, where)
}

// real is where a path leads in the end, as the kernel has it: Node's own way takes a link and ".." after it for nothing.
function real (where, entry) {
  try { return fs.realpathSync.native(where) } catch (e) { return refuse(`the link '${entry.name.slice(0, 100)}' leads nowhere`) }
}

function unpack (data, folder) {
  fs.mkdirSync(folder)
  folder = fs.realpathSync(folder)
  const list = entries(data)
  if (list.reduce((sum, entry) => sum + entry.size, 0) > MOST_BYTES) refuse(`the archive holds more than ${MOST_BYTES} bytes`)
  const links = []
  for (const entry of list) {
    const where = place(folder, entry.name)
    if (entry.name.endsWith('/')) {
      fs.mkdirSync(where, { recursive: true })
      continue
    }
    fs.mkdirSync(path.dirname(where), { recursive: true })
    if ((entry.mode & 0o170000) === 0o120000) {
      links.push([where, entry])
      continue
    }
    try {
      fs.writeFileSync(where, contents(data, entry), { flag: 'wx', mode: entry.mode & 0o111 ? 0o755 : 0o644 })
    } catch (e) {
      throw e.code === 'EEXIST' ? new Error(`the archive has '${entry.name}' twice`) : e
    }
  }
  for (const [where, entry] of links) link(folder, where, entry, data)
  for (const [where, entry] of links) { // through each other they may lead further than each alone
    if (!inside(folder, real(where, entry))) refuse(`the link '${entry.name.slice(0, 100)}' leads out of the archive`)
  }
  return folder
}

module.exports = { unpack }
