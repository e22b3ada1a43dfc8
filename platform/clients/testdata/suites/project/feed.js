function main (args) {
  console.log(args.lifecycleEvent, args.triggerName)
  if (args.refuse) return { error: 'this feed refuses' }
  return { event: args.lifecycleEvent, trigger: args.triggerName }
}
