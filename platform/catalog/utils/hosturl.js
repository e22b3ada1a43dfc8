// Tells the address at which an action, a web action or a trigger of the caller's is invoked.
function main ({ web, ext, trigger, path = '' }) {
  const api = process.env.__OW_API_HOST + '/api/v1'
  const namespace = process.env.__OW_NAMESPACE
  if (!web) return { url: `${api}/namespaces/${namespace}/${trigger ? 'triggers' : 'actions'}/${path}` }
  return { url: `${api}/web/${namespace}/${path.includes('/') ? path : 'default/' + path}${ext || '.json'}` }
}
