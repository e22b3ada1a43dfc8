function main (args) {
  return args
}
