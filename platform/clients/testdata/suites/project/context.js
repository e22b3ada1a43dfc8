function main () {
  const e = process.env
  return { action: e.__OW_ACTION_NAME, namespace: e.__OW_NAMESPACE, id: e.__OW_ACTIVATION_ID, left: e.__OW_DEADLINE - Date.now(), key: 'k' in e || !!e.__OW_API_KEY }
}
