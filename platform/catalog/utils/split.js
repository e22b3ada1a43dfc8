// Cuts a text into lines, or at a separator.
function main ({ payload = '', separator = /\r?\n/ }) {
  return { lines: String(payload).split(separator), payload }
}
