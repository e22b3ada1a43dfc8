function main (args) {
  return new Promise(resolve => setTimeout(() => resolve({ waited: args.ms }), args.ms))
}
