// Tells the time.
function main () {
  return { date: new Date() }
}
