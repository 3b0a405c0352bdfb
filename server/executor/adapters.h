#ifndef NPUC_SERVER_EXECUTOR_ADAPTERS_H_
#define NPUC_SERVER_EXECUTOR_ADAPTERS_H_

#include <memory>

#include "server/executor/ports.h"

namespace npuc {

// The executor's ports on the real stores and the real pool, which must outlive what is returned.
std::unique_ptr<InputStore> AdaptBlobStore(BlobStore* store);
std::unique_ptr<ResultCache> AdaptArtifactCache(ArtifactCache* cache);
std::unique_ptr<WorkerRunner> AdaptWorkerPool(WorkerPool* pool);

}  // namespace npuc

#endif  // NPUC_SERVER_EXECUTOR_ADAPTERS_H_
