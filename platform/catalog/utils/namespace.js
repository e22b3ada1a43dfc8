// Tells the namespace that it runs for.
function main () {
  return { namespace: process.env.__OW_NAMESPACE }
}
