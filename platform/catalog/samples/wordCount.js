// Counts words.
function main ({ payload }) {
  const text = String(payload)
  const count = text.split(/\s+/).filter(word => word).length
  console.log(`The message '${text}' has ${count} words`)
  return { count }
}
