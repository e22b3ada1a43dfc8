function (doc) {
  // A row for every condition that a list may have, with all that the other conditions ask of a record.
  if (doc._id.slice(0, 4) !== 'job-' || !doc.job) { return; }
  var network = (doc.job.model || {}).name, output = (doc.job.output || {}).model, models = [], i;
  if (network) { models.push(network); }
  if (output && output !== network) { models.push(output); }
  var of = {
    status: doc.status || '', dataset: (doc.data || {}).name || '', models: models, tenant: doc.tenant || ''
  };
  var rows = function (tenant) {
    emit([tenant, 'status', of.status, doc._id], of);
    emit([tenant, 'dataset', of.dataset, doc._id], of);
    for (i = 0; i < models.length; i++) { emit([tenant, 'model', models[i], doc._id], of); }
  };
  rows(null);
  if (doc.tenant) {
    emit([doc.tenant, 'any', '', doc._id], of);
    rows(doc.tenant);
  }
}
