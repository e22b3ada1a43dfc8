// Joins lines to one text.
function main ({ lines = [] }) {
  return { lines, payload: lines.join('\n') }
}
