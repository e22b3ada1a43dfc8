function main (args) {
  console.log('greeting', args.name)
  return { greeting: 'hello, ' + (args.name || 'you') }
}
