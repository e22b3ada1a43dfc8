// Greets somebody from somewhere.
function main (args) {
  console.log('params:', args)
  return { payload: `Hello, ${args.name || args.payload || 'stranger'} from ${args.place || 'somewhere'}!` }
}
