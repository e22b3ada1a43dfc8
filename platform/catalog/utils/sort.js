// Sorts lines.
function main ({ lines = [] }) {
  return { lines: lines.sort(), length: lines.length }
}
