// Greets in the log.
function main ({ payload }) {
  console.log('hello ' + (payload || 'world') + '!')
}
